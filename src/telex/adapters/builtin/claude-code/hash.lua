-- A short id for a text: 32-bit FNV-1a, as eight hexadecimal digits.
--
-- It distinguishes two dialogs or two screens. It is not cryptographic.

local hash = {}

function hash.fnv1a(text)
  local sum = 0x811c9dc5
  for place = 1, #text do
    sum = ((sum ~ text:byte(place)) * 0x01000193) & 0xffffffff
  end
  return string.format("%08x", sum)
end

return hash
