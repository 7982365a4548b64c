help-shop = Look at what there is
welcome = What may it be?
added = { $name } is in the basket.
basket = Basket
empty = The basket is empty.
order = Order
ordered = Order { $number } is on its way. Thank you!
