// Bundles the extension; `node build.mjs package` puts it into a .vsix as well, which is a zip with two lists in it.
import { build } from "esbuild";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";

process.chdir(dirname(fileURLToPath(import.meta.url)));
rmSync("dist", { recursive: true, force: true });
await build({
  entryPoints: { extension: "src/extension.ts" },
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: true,
  legalComments: "linked",
  outdir: "dist",
  outExtension: { ".js": ".cjs" },
  logLevel: "warning",
});

const manifest = JSON.parse(readFileSync("package.json", "utf8"));

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** What a marketplace and the editor read first. */
function vsixManifest() {
  const { name, publisher, version, displayName, description, categories, engines } = manifest;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}"/>
    <DisplayName>${escape(displayName)}</DisplayName>
    <Description xml:space="preserve">${escape(description)}</Description>
    <Categories>${escape(categories.join(","))}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${escape(engines.vscode)}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/readme.md" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
}

const CONTENT_TYPES = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${[
  ["json", "application/json"],
  ["vsixmanifest", "text/xml"],
  ["cjs", "application/javascript"],
  ["md", "text/markdown"],
  ["svg", "image/svg+xml"],
]
  .map(([kind, type]) => `<Default Extension=".${kind}" ContentType="${type}"/>`)
  .join("")}</Types>
`;

/** The checksum of zip; Node has one of its own only from version 20 on. */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** A zip of these files. The date is fixed: the same sources give the same bytes. */
function zip(files) {
  const DATE = 0x5821; // 2024-01-01
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, content] of files) {
    const packed = deflateRawSync(content, { level: 9 });
    const path = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(path.length, 22);
    parts.push(Buffer.from("PK\x03\x04", "latin1"), common, path, packed);
    const entry = Buffer.alloc(14);
    entry.writeUInt32LE(offset, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), common, entry, path);
    offset += 30 + path.length + packed.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, Buffer.from("PK\x05\x06", "latin1"), end]);
}

if (process.argv[2] === "package") {
  // What a user needs of the manifest; the rest is for us.
  const { devDependencies, dependencies, scripts, private: hidden, ...shipped } = manifest;
  const text = (path) => readFileSync(path);
  const target = `beamtalk-${manifest.version}.vsix`;
  writeFileSync(
    target,
    zip([
      ["extension.vsixmanifest", Buffer.from(vsixManifest())],
      ["[Content_Types].xml", Buffer.from(CONTENT_TYPES)],
      ["extension/package.json", Buffer.from(`${JSON.stringify(shipped, null, 2)}\n`)],
      ["extension/readme.md", text("README.md")],
      ["extension/icon.svg", text("icon.svg")],
      ["extension/language-configuration.json", text("language-configuration.json")],
      ["extension/syntaxes/beamtalk.tmLanguage.json", text("syntaxes/beamtalk.tmLanguage.json")],
      ["extension/dist/extension.cjs", text("dist/extension.cjs")],
    ]),
  );
  console.log(`editors/vscode/${target}`);
}
