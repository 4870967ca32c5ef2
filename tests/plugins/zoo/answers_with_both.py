import speaking


def work(message):
    speaking.write(id=message["id"], result="yes", error={"code": 1, "message": "no"})


speaking.serve(work=work)
