import { isUint8Array } from 'node:util/types'
import type {
  CoupledEnding,
  CoupledFinding,
  CoupledOutcome,
  CoupledRequest,
  CoupledStore,
} from '../../idempotency/coupled/coupled-store.js'
import type { Belonging, ResultCipher } from './result-cipher.js'

/** Returns a `run` that stores results only encrypted. */
export function encryptedRun(store: CoupledStore, sealing: ResultCipher): CoupledStore['run'] {
  return async (request, work) => {
    const belonging = belongingOf(request)
    const outcome = await store.run(request, async (run) =>
      sealed(await work(run), (result) => sealing.seal(result, belonging)),
    )
    const open = (kept: Uint8Array) => sealing.open(kept, belonging)
    return outcome?.outcome === 'overtaken'
      ? { outcome: 'overtaken', by: await openedFinding(outcome.by, open) }
      : openedFinding(outcome, open)
  }
}

const belongingOf = ({ key, fingerprint }: CoupledRequest): Belonging => ({
  record: key,
  fingerprint,
})

async function sealed(
  ending: CoupledEnding,
  seal: (result: Uint8Array) => Promise<Uint8Array>,
): Promise<CoupledEnding> {
  if (ending.type === 'roll_back' || ending.result === undefined) return ending
  return { type: ending.type, result: await seal(ending.result) }
}

async function openedFinding<Outcome extends CoupledOutcome>(
  outcome: Outcome,
  open: (kept: Uint8Array) => Promise<Uint8Array | undefined>,
): Promise<Outcome | (CoupledFinding & { readonly outcome: 'finished' | 'unreadable' })> {
  // The middleware reports a value that is not an outcome.
  if (outcome?.outcome !== 'finished' || !isUint8Array(outcome.result)) return outcome
  const result = await open(outcome.result)
  return result === undefined ? { outcome: 'unreadable' } : { ...outcome, result }
}
