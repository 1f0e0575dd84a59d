"""A session with an independent client: pygls from PyPI, whose types reject what the protocol does not allow.

Every answer is written to a transcript and compared with session.txt beside this file, paths apart; UPDATE=1 writes it.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from lsprotocol import converters, types
from pygls.lsp.client import LanguageClient

HERE = Path(__file__).parent
PROJECT = Path(os.environ["PROJECT"])
LAMP = (PROJECT / "src/Lamp.bt").as_uri()
LIMIT = 20
# What every version offers; more may come.
CAPABILITIES = {
    "callHierarchyProvider", "codeActionProvider", "codeLensProvider", "completionProvider", "definitionProvider",
    "diagnosticProvider", "documentFormattingProvider", "documentHighlightProvider", "documentOnTypeFormattingProvider",
    "documentRangeFormattingProvider", "documentSymbolProvider", "foldingRangeProvider", "hoverProvider",
    "implementationProvider", "inlayHintProvider", "referencesProvider", "renameProvider", "selectionRangeProvider",
    "semanticTokensProvider", "signatureHelpProvider", "textDocumentSync", "typeHierarchyProvider",
    "workspaceSymbolProvider",
}  # fmt: skip
converter = converters.get_converter()
transcript: list[str] = []


def plain(value):
    """As JSON, without what differs between runs."""
    text = json.dumps(converter.unstructure(value), indent=1, sort_keys=True, ensure_ascii=False)
    return text.replace(PROJECT.as_uri(), "PROJECT").replace(str(PROJECT), "PROJECT")


def note(title, value):
    transcript.append(f"## {title}\n{plain(value)}\n")


class Session:
    def __init__(self):
        self.client = LanguageClient("session", "1")
        self.published = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams):
            self.published.put_nowait(params)

    async def diagnostics(self, wanted):
        """The next published diagnostics of which `wanted` holds."""
        while True:
            params = await asyncio.wait_for(self.published.get(), LIMIT)
            if params.uri == LAMP and wanted(params.diagnostics):
                return params.diagnostics

    async def start(self, encodings):
        await self.client.start_io("beamtalk", "lsp")
        answer = await self.client.initialize_async(
            types.InitializeParams(
                process_id=os.getpid(),
                root_uri=PROJECT.as_uri(),
                workspace_folders=[types.WorkspaceFolder(uri=PROJECT.as_uri(), name="shop")],
                capabilities=types.ClientCapabilities(
                    general=types.GeneralClientCapabilities(position_encodings=encodings),
                    text_document=types.TextDocumentClientCapabilities(
                        document_symbol=types.DocumentSymbolClientCapabilities(hierarchical_document_symbol_support=True),
                        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
                    ),
                ),
            )
        )
        self.client.initialized(types.InitializedParams())
        return answer

    async def stop(self):
        await asyncio.wait_for(self.client.shutdown_async(None), LIMIT)
        self.client.exit(None)
        # Leaves no process behind: the server itself goes, nobody kills it.
        code = await asyncio.wait_for(self.client._server.wait(), LIMIT)
        assert code == 0, f"the server ended with {code}"
        await self.client.stop()


def at(text, word, offset=0):
    """The position of a word in a text of ASCII."""
    before = text[: text.index(word) + offset]
    return types.Position(line=before.count("\n"), character=len(before) - (before.rfind("\n") + 1))


async def main():
    session = Session()
    client = session.client
    answer = await session.start([types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16])
    assert answer.capabilities.position_encoding == types.PositionEncodingKind.Utf8
    offered = {key for key, value in converter.unstructure(answer.capabilities).items() if value}
    note("initialize: of the capabilities promised", sorted(CAPABILITIES & offered))

    text = (PROJECT / "src/Lamp.bt").read_text()
    document = types.TextDocumentIdentifier(uri=LAMP)
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri=LAMP, language_id="beamtalk", version=1, text=text))
    )
    note("diagnostics of a file without faults", await session.diagnostics(lambda found: True))

    place = {"text_document": document, "position": at(text, "Lamp")}
    note("hover", await client.text_document_hover_async(types.HoverParams(**place)))
    note("symbols", await client.text_document_document_symbol_async(types.DocumentSymbolParams(document)))
    where = types.TextDocumentPositionParams(document, at(text, "self.on not", 8))
    definition = await client.text_document_definition_async(types.DefinitionParams(where.text_document, where.position))
    note("definition of a message, in the library", sorted(found.uri for found in definition))
    highlights = await client.text_document_document_highlight_async(
        types.DocumentHighlightParams(document, at(text, "on = false"))
    )
    note("highlights of a slot", highlights)
    note("folding", await client.text_document_folding_range_async(types.FoldingRangeParams(document)))
    rename = await client.text_document_rename_async(types.RenameParams(document, at(text, "on = false"), "isLit"))
    note("rename of a slot", rename)

    broken = text + "\n  broken => (self toggle\n"
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(uri=LAMP, version=2),
            [types.TextDocumentContentChangeWholeDocument(text=broken)],
        )
    )
    note("diagnostics of half a method", await session.diagnostics(bool))
    note("hover, while it is broken", await client.text_document_hover_async(types.HoverParams(**place)))
    items = await client.text_document_completion_async(types.CompletionParams(document, at(broken, "self.on not", 9)))
    listed = items if isinstance(items, list) else items.items
    labels = [item.label for item in listed]
    assert labels, "no completion"
    note("completions that start with notN", sorted(label for label in labels if label.startswith("notN")))

    # A question about a place that is not there is answered as an error or with nothing, and the server goes on.
    far = types.Position(line=9_999, character=9_999)
    try:
        note("hover past the end", await client.text_document_hover_async(types.HoverParams(document, far)))
    except Exception as error:  # noqa: BLE001
        note("hover past the end", {"error": str(error)})
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(uri=LAMP, version=3),
            [types.TextDocumentContentChangeWholeDocument(text=text.replace(" => ", "   =>  "))],
        )
    )
    edits = await client.text_document_formatting_async(
        types.DocumentFormattingParams(document, types.FormattingOptions(tab_size=2, insert_spaces=True))
    )
    note("formatting", edits)
    await session.stop()

    found = "\n".join(transcript)
    path = HERE / "session.txt"
    if os.environ.get("UPDATE"):
        path.write_text(found)
    if found != path.read_text():
        (PROJECT / "found.txt").write_text(found)
        os.system(f"diff {path} {PROJECT}/found.txt >&2")
        sys.exit("pygls: the session differs from editors/pygls/session.txt; UPDATE=1 writes it")
    print(f"pygls: {len(transcript)} answers as recorded")


asyncio.run(main())
