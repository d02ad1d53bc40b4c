import type { StoreCase } from 'express-service-auth/testing'
import { it } from 'vitest'

/** Each rule as a test of its own. */
export function testCases(cases: readonly StoreCase[]): void {
  for (const { name, run } of cases) it(name, run)
}

/** The names of the rules that a store breaks. */
export async function brokenRules(cases: readonly StoreCase[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(cases.map(({ run }) => run()))
  return cases.flatMap(({ name }, index) => (outcomes[index]?.status === 'rejected' ? [name] : []))
}
