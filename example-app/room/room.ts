import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { textFrom } from '../environment.js'
import { POLICY } from '../orders/policy.js'
import type { Stage } from '../story/stage.js'
import { type CallOrder, openCalls } from './calls.js'
import type { Watch } from './watch.js'

export type Room = Awaited<ReturnType<typeof openRoom>>

const DOOMED = new URL('./doomed-receiver.ts', import.meta.url)

/** What the page shows and does: calls to the services of a stage, and four ways to disturb them. */
export async function openRoom(stage: Stage, watch: Watch) {
  const calls = await openCalls(stage, watch)
  const { core, deniedCallers } = stage
  let isCoreUp = true

  const actions = {
    /** The core signs with a new key. */
    async rotate() {
      return { told: `The core signs with ${core.rotate()} from now on.` }
    },
    /** Stops the core, or starts it again. */
    async core() {
      isCoreUp = !isCoreUp
      await (isCoreUp ? core.start() : core.stop())
      return {
        told: isCoreUp ? 'The core is up.' : 'The core is down: no keys, and no new tokens.',
      }
    },
    /** Denies billing, or lets it in again. */
    async deny() {
      const isDenied = deniedCallers.delete('billing')
      if (!isDenied) deniedCallers.add('billing')
      return {
        told: isDenied ? 'billing may call again.' : 'billing is denied, also with good tokens.',
      }
    },
    /** Kills a receiver in the middle of a write; returns the key of that write. */
    async kill() {
      if (textFrom('REDIS_URL') === undefined) throw new TypeError('this needs a REDIS_URL')
      const key = randomUUID()
      await killInWrite(stage, key)
      return {
        told: 'The receiver was killed in the write. Send it again with its key: is it running, done, lost?',
        key,
      }
    },
  }

  return {
    actions,
    send: (order: CallOrder) => calls.send(order),
    state: () => ({
      isCoreUp,
      isBillingDenied: deniedCallers.has('billing'),
      canKill: textFrom('REDIS_URL') !== undefined,
      callers: [...Object.keys(POLICY.callers as object), 'stranger'],
      hostile: calls.hostile,
      events: watch.events(),
      decisions: watch.decisions(),
      now: Date.now(),
    }),
    close: calls.close,
  }
}

/** Starts an instance of orders that shares the store, sends it a write, and kills it before the write ends. */
async function killInWrite({ core, tokenOf }: Stage, key: string): Promise<void> {
  const policy = { ...POLICY, jwksUri: `${core.url}/.well-known/jwks.json` }
  const token = await tokenOf('billing', ['orders:write'])
  const receiver = fork(DOOMED, [JSON.stringify(policy)], { execArgv: ['--import', 'tsx'] })
  try {
    const [url] = await once(receiver, 'message')
    const cut = fetch(`${url}/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify({ item: 'lamp', quantity: 1 }),
    }).catch(() => undefined)
    await once(receiver, 'message')
    receiver.kill('SIGKILL')
    await cut
  } finally {
    receiver.kill('SIGKILL')
  }
}
