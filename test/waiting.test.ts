// A page in a browser draws a little later than its data arrives, so tests wait for what they expect of it.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/**
 * An expectation of a value that Playwright returns at once, before the page has drawn the latest data. A test that something never appears
 * reads it into a variable first, since waiting would accept that it appears and goes.
 */
const READ_ONCE =
  /expect\(\s*await\s[^;]*?\.(?:allInnerTexts|allTextContents|content|count|evaluate(?:<[^>]*>)?|getAttribute|innerText|inputValue|isChecked|isDisabled|isEnabled|isHidden|isVisible|textContent|title)\(/;

test("an expectation of a page waits for what it expects", () => {
  const files = globSync("test/{page,e2e/pages}/**/*.ts");
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => READ_ONCE.test(readFileSync(file, "utf8")))).toEqual([]);
});
