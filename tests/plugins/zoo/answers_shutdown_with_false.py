import speaking

speaking.serve(shutdown=lambda message: speaking.write(id=message["id"], result=False))
