import { isUint8Array } from 'node:util/types'
import type {
  CoupledEnding,
  CoupledFinding,
  CoupledOutcome,
  CoupledStore,
} from '../../idempotency/coupled/coupled-store.js'
import type { ResultCipher } from './result-cipher.js'

/** Returns a `run` that stores results only encrypted. */
export function encryptedRun(store: CoupledStore, cipher: ResultCipher): CoupledStore['run'] {
  return async (request, work) => {
    const { recordId, fingerprint } = request
    // Nothing is stored.
    if (recordId === undefined) return store.run(request, work)
    const associatedData = { recordId, fingerprint }
    const seal = (result: Uint8Array) => cipher.seal(result, associatedData)
    const open = (stored: Uint8Array) => cipher.open(stored, associatedData)
    const outcome = await store.run(request, async (run) => sealEnding(await work(run), seal))
    return outcome?.outcome === 'overtaken'
      ? { outcome: 'overtaken', by: openOutcome(outcome.by, open) }
      : openOutcome(outcome, open)
  }
}

function sealEnding(
  ending: CoupledEnding,
  seal: (result: Uint8Array) => Uint8Array,
): CoupledEnding {
  if (ending.type === 'roll_back' || ending.result === undefined) return ending
  return { type: ending.type, result: seal(ending.result) }
}

function openOutcome<Outcome extends CoupledOutcome>(
  outcome: Outcome,
  open: (stored: Uint8Array) => Uint8Array | undefined,
): Outcome | (CoupledFinding & { readonly outcome: 'finished' | 'unreadable' }) {
  // The middleware reports a value that is not an outcome.
  if (outcome?.outcome !== 'finished' || !isUint8Array(outcome.result)) return outcome
  const result = open(outcome.result)
  return result === undefined ? { outcome: 'unreadable' } : { ...outcome, result }
}
