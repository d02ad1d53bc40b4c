import type { DecisionEvent } from 'express-service-auth'
import { createForge, type Forge } from '../../src/testing/hostile-tokens/forge.js'
import type { HostileToken } from '../../src/testing/hostile-tokens/hostile-case.js'
import { createTestIssuer } from '../../src/testing/issuer/issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

export interface Judged {
  readonly name: string
  readonly status: number
  readonly reason: string
  readonly claim: string | undefined
}

/** What operators see of each case, so that a case that is hostile for the wrong reason stands out. */
export async function judgeCases(cases: (forge: Forge) => HostileToken[]): Promise<Judged[]> {
  const issuer = await createTestIssuer({ http: false })
  let last: DecisionEvent | undefined
  const onDecision = (event: DecisionEvent): void => {
    last = event
  }
  const receiver = await startReceiver({
    express: EXPRESS_MAJORS[1]?.express as never,
    mount: (app) => app.use(authFor(issuer.policy({ onDecision }))),
  })
  const judged: Judged[] = []
  for (const { name, authorization } of cases(createForge(issuer))) {
    const { status } = await fetch(receiver.url, { headers: { authorization } })
    const reason = last?.outcome === 'refused' ? last.reason : String(last?.outcome)
    judged.push({ name, status, reason, claim: last?.claim })
  }
  await issuer.close()
  return judged
}

/** The reasons that occur, each with how many cases it has. */
export function countReasons(judged: readonly Judged[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { reason } of judged) counts[reason] = (counts[reason] ?? 0) + 1
  return counts
}
