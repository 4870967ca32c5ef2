import speaking


def work(message):
    speaking.raw(b"working on it... ")
    speaking.write(id=message["id"], result="done")


speaking.serve(work=work)
