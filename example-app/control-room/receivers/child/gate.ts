import type { Handlers } from '../ipc/calls.js'
import type { GateState } from '../messages.js'

/** Where a write can be stopped: when its order is on the books, before its caller has an answer. */
export interface Gate {
  /** Resolves at once, or when the write is let go. */
  pass(): Promise<void>
  /** What the parent does with it. */
  readonly handlers: Handlers
}

export function createGate(send: (state: GateState) => void): Gate {
  let isHoldingNextWrite = false
  const held = new Set<() => void>()
  const sendState = (): void => send({ isHoldingNextWrite, heldWrites: held.size })

  return {
    pass() {
      if (!isHoldingNextWrite) return Promise.resolve()
      isHoldingNextWrite = false
      return new Promise((resolve) => {
        held.add(resolve)
        sendState()
      })
    },
    handlers: {
      holdNextWrite(isHolding: boolean) {
        isHoldingNextWrite = isHolding
        sendState()
      },
      letGo() {
        const writes = [...held]
        held.clear()
        for (const letGo of writes) letGo()
        sendState()
      },
    },
  }
}
