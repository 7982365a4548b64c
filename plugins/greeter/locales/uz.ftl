# Buyruqlar menyusida koʻrinadi.
cmd-start = Salom berish

hello = Salom, { $name }!
