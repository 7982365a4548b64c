# Buyruqlar menyusida koʻrinadi.
cmd-start = Salom berish
cmd-language = Tilni tanlash

# HTML.
hello = Salom, { $name }!

menu =
    .language = 🌐 Til

language = Oʻzbekcha
    .which = Qaysi tilda gapiray?
    .as-telegram = Telegramdagidek
    .chosen = Endi oʻzbekcha gapiraman.
