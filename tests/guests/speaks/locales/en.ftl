said = en { $count } { $count ->
    [one] one
   *[other] other
 }
