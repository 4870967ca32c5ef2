import speaking

owed = []


def ping(message):
    for id in owed:
        speaking.write(id=id, result="too late")
    speaking.write(id=message["id"], result="pong")


speaking.serve(work=lambda message: owed.append(message["id"]), ping=ping)
