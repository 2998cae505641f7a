-- a pause of up to 5 ms before each request
function delay()
   return math.random(0, 5)
end
