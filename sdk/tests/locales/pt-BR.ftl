hello = Olá
