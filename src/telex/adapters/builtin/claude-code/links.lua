-- Links to a login. A link that only looks like one is not returned.

local links = {}

local HOSTS = { "claude.ai", "claude.com", "anthropic.com" }

-- The host of an https link, in lower case; nil if the link is too unusual to be sure.
local function host(url)
  local authority = url:match("^https://([^/?#]*)")
  return authority and authority:lower():match("^([%w.-]+)$")
end

function links.is_login(url)
  local name = host(url)
  for _, known in ipairs(HOSTS) do
    if name == known or (name and name:sub(-#known - 1) == "." .. known) then
      return true
    end
  end
  return false
end

-- A wrapped link continues in the next rows, as long as they have no space.
local function whole(scene, at)
  local url = scene.rows[at].text
  local next_row = scene.rows[at + 1]
  while not url:find(" ") and next_row and next_row.text ~= "" and not next_row.text:find(" ") do
    url, at = url .. next_row.text, at + 1
    next_row = scene.rows[at + 1]
  end
  return url:match("^[^ ]+")
end

-- The first link to a login at the beginning of a row.
function links.login(scene)
  for at, row in ipairs(scene.rows) do
    if row.lower:find("^https://") then
      local url = whole(scene, at)
      if links.is_login(url) then
        return url
      end
    end
  end
  return nil
end

return links
