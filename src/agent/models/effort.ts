// Thinking is configured as a budget in tokens. Newer models take a word instead.

export type Effort = "low" | "medium" | "high";

export function effortOf(budget: number): Effort {
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}
