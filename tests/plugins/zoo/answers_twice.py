import speaking


def work(message):
    speaking.write(id=message["id"], result="once")
    speaking.write(id=message["id"], result="twice")


speaking.serve(work=work)
