import speaking


def work(message):
    speaking.write(id=1, method="$/progres", params={"why": None})
    answer = speaking.read()
    speaking.write(id=message["id"], result=answer)


speaking.serve(work=work)
