said = uz { $count } { $count ->
    [one] one
   *[other] other
 }
