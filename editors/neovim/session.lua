-- A session in a real Neovim: the blocks of docs/editors.md as they stand there, the real binary, the real grammar.
-- Run by editors/test.sh: nvim --headless -u NONE -c 'luafile session.lua', with ROOT, PROJECT and the binary on the path.
local root, project = os.getenv("ROOT"), os.getenv("PROJECT")

local function check(condition, message)
  if not condition then
    io.stderr:write("neovim: " .. message .. "\n")
    vim.cmd("cquit 1")
  end
end

local function wait_for(message, condition)
  check(vim.wait(20000, condition, 20), "waited in vain for " .. message)
end

-- The Lua blocks of the page: the one for old versions first, as the page says.
local page = io.open(root .. "/docs/editors.md"):read("*a")
local blocks = {}
for block in page:gmatch("```lua\n(.-)```") do table.insert(blocks, block) end
check(#blocks == 2, #blocks .. " Lua blocks in docs/editors.md")
for _, block in ipairs({ blocks[2], blocks[1] }) do assert((loadstring or load)(block))() end

-- Server
vim.cmd("edit " .. project .. "/src/Lamp.bt")
check(vim.bo.filetype == "beamtalk", "the file type is " .. vim.bo.filetype)
local function client() return (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1] end
wait_for("the server", function() return client() ~= nil and client().server_capabilities ~= nil end)

local function ask(method, params)
  params.textDocument = vim.lsp.util.make_text_document_params()
  local answers, fault = vim.lsp.buf_request_sync(0, method, params, 20000)
  check(answers ~= nil, method .. ": " .. tostring(fault))
  for _, answer in pairs(answers) do
    check(answer.error == nil, method .. ": " .. vim.inspect(answer.error))
    return answer.result
  end
end

local hover = ask("textDocument/hover", { position = { line = 1, character = 18 } })
check(vim.inspect(hover):find("Gives light", 1, true), "hover: " .. vim.inspect(hover))

local symbols = ask("textDocument/documentSymbol", {})
check(vim.inspect(symbols):find("toggle", 1, true), "symbols: " .. vim.inspect(symbols))

-- Half typed: the fault is shown, the rest keeps its answers.
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "", "  broken => self frob: (", "" })
wait_for("a diagnostic", function() return #vim.diagnostic.get(0) > 0 end)
local completion = ask("textDocument/completion", { position = { line = 5, character = 17 } })
check(completion ~= nil, "completion in broken code answers nothing")
vim.cmd("silent undo")
wait_for("no diagnostic", function() return #vim.diagnostic.get(0) == 0 end)

-- Definition into the library, which is no file.
local definition = ask("textDocument/definition", { position = { line = 1, character = 2 } })
check(vim.inspect(definition):find("Actor", 1, true), "definition: " .. vim.inspect(definition))

-- Formatting edits the text.
vim.api.nvim_buf_set_lines(0, 5, 6, false, { "  toggle    =>   self.on := self.on not" })
local edits = ask("textDocument/formatting", { options = { tabSize = 2, insertSpaces = true } })
vim.lsp.util.apply_text_edits(edits, 0, client().offset_encoding)
check(vim.api.nvim_buf_get_lines(0, 5, 6, false)[1] == "  toggle => self.on := self.on not", "formatted: " .. vim.inspect(edits))

-- Grammar: the library file by file without an error node, and every query.
local query = vim.treesitter.query.get or vim.treesitter.query.get_query
local parser = vim.treesitter.get_parser(0, "beamtalk")
check(not parser:parse()[1]:root():has_error(), "the grammar reads Lamp.bt with an error")
local found = {}
local highlights = query("beamtalk", "highlights")
for id, node in highlights:iter_captures(parser:parse()[1]:root(), 0, 0, -1) do
  local row, from, _, to = node:range()
  found[highlights.captures[id] .. " " .. (vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""):sub(from + 1, to)] = true
end
check(found["type.definition Lamp"] and found["function.method toggle"] and found["variable.member .on"], "captures: " .. vim.inspect(found))
for _, name in ipairs({ "folds", "indents", "locals" }) do check(query("beamtalk", name), "no query " .. name) end
local files = vim.fn.glob(root .. "/lib/**/*.bt", false, true)
for _, file in ipairs(files) do
  local text = io.open(file):read("*a")
  local tree = vim.treesitter.get_string_parser(text, "beamtalk"):parse()[1]
  check(not tree:root():has_error(), "the grammar reads " .. file .. " with an error")
end
check(#files > 80, #files .. " files")

-- The server ends with its editor.
local process = client()
process.stop()
wait_for("the end of the server", function() return process.is_stopped() end)
print(("neovim %s: server and grammar, %d files"):format(tostring(vim.version().major .. "." .. vim.version().minor), #files))
vim.cmd("qall!")
