import speaking


def work(message):
    speaking.write(id=1, method="host/no-such-method", params={"why": None})
    answer = speaking.read()
    speaking.write(id=message["id"], result=answer)


speaking.serve(work=work)
