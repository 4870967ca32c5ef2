import speaking


def work(message):
    speaking.write(id=4711, result="whose?")
    speaking.write(id=message["id"], result="yours")


speaking.serve(work=work)
