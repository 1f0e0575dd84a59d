// Makes docs/browser.jpg of the main screenshots: node sheet.mjs, after the scenarios ran.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const SHOTS = ["05-error-light", "10-diff-dark", "19-observe-dark", "11-three-way-light", "21-phone-workspace-light"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 700 } });
const images = SHOTS.map((name) => `<img src="data:image/png;base64,${readFileSync(`e2e/shots/${name}.png`, "base64")}">`);
await page.setContent(`<style>body { margin: 0; padding: 10px; background: #8a919b; display: grid; grid-template-columns: 480px 480px 200px; grid-auto-rows: 300px; gap: 10px; }
  img { width: 100%; height: 100%; object-fit: contain; object-position: top left; } img:last-of-type { grid-area: 1 / 3 / 3 / 4; }</style>${images.join("")}`);
await page.screenshot({ path: "../docs/browser.jpg", type: "jpeg", quality: 60, clip: { x: 0, y: 0, width: 1200, height: 630 } });
await browser.close();
