import { expect, test } from "vitest";
import { csvOf } from "../../src/page/csv.ts";

test("a table can be read back unchanged, and no field is a formula", () => {
  expect(
    csvOf([
      ["day", "agent"],
      ["2026-11-27", 'say "hi", twice\nplease'],
    ]),
  ).toBe('day,agent\r\n2026-11-27,"say ""hi"", twice\nplease"\r\n');
  expect(csvOf([["=1+1", "+1", "-1", "@x", -1, 0.25]])).toBe("'=1+1,'+1,'-1,'@x,-1,0.25\r\n");
});
