import type { StoreCase } from 'express-service-auth/testing'
import { it } from 'vitest'

/** Registers a test for each case. */
export function testCases(cases: readonly StoreCase[]): void {
  for (const { name, run } of cases) it(name, run)
}

/** Returns the names of the cases that fail. */
export async function brokenRules(cases: readonly StoreCase[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(cases.map(({ run }) => run()))
  return cases.flatMap(({ name }, index) => (outcomes[index]?.status === 'rejected' ? [name] : []))
}
