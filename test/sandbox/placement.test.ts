import { expect, test } from "vitest";
import { type EngineLoad, placeNew } from "../../src/sandbox/docker/engines.ts";

const engine = (name: string, more: Partial<EngineLoad> = {}): EngineLoad => ({
  ...{ name, isUp: true, isDraining: false, capacity: 10, running: 0, sandboxes: 0 },
  ...more,
});

test("a new sandbox goes to the engine with the fewest, and among equal engines to the first by name", () => {
  expect(placeNew([engine("b"), engine("a")])).toBe("a");
  expect(placeNew([engine("a", { sandboxes: 3 }), engine("b", { sandboxes: 2 })])).toBe("b");
});

test("an engine with more capacity gets more sandboxes", () => {
  const small = engine("a", { capacity: 10, sandboxes: 4 });
  expect(placeNew([small, engine("b", { capacity: 40, sandboxes: 15 })])).toBe("b");
  expect(placeNew([small, engine("b", { capacity: 40, sandboxes: 17 })])).toBe("a");
});

test("a full engine comes last, however few sandboxes are stored there", () => {
  const full = engine("a", { capacity: 2, running: 2, sandboxes: 2 });
  expect(placeNew([full, engine("b", { sandboxes: 1000 })])).toBe("b");
  expect(placeNew([full])).toBe("a");
});

test("an engine that drains or does not respond gets none", () => {
  const others = [engine("a", { isDraining: true }), engine("b", { isUp: false })];
  expect(placeNew([...others, engine("c", { sandboxes: 1000 })])).toBe("c");
  expect(placeNew(others)).toBeUndefined();
});
