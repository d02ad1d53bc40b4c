import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import { failureAt } from './statement-failure.js'

export interface Probe {
  /**
   * Whether the server can look whether a client is still there. Asked once, outside of any run: in a
   * transaction, a refusal would end it. Rejects while the server is out of reach.
   */
  read(): Promise<boolean>
}

export function createProbe<Tx>(place: Place<Tx>): Probe {
  let asked: Promise<boolean> | undefined

  async function probe(): Promise<boolean> {
    try {
      await ask(place, place.statements.probe())
      return true
    } catch (error) {
      if (failureAt('record', sqlStateOf(error)) === 'refused') return false
      asked = undefined
      throw error
    }
  }

  return {
    read() {
      asked ??= probe()
      return asked
    },
  }
}
