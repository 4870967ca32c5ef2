import speaking

speaking.serve(work=lambda message: speaking.write(id=message["id"]))
