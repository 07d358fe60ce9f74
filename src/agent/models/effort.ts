// Converts a thinking budget in tokens to the effort level that newer models expect.

export type Effort = "low" | "medium" | "high";

export function effortOf(budget: number): Effort {
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}
