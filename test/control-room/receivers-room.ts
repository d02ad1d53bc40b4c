import { randomUUID } from 'node:crypto'
import type { ReceiverReport } from '../../example-app/control-room/ports.js'
import type { ReceiverName } from '../../example-app/control-room/protocol.js'
import {
  openReceivers,
  type Programs,
} from '../../example-app/control-room/receivers/open-receivers.js'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'
import { API_KEY, serviceTokenBy } from '../example-app/core-client.js'
import { compile } from '../support/process/compile.js'

const PROGRAMS = '../../example-app/control-room/receivers/'

/** The processes of the room, which start in a fraction of the time when they are compiled. */
export async function programs(): Promise<Programs> {
  const [receiver = '', answer = ''] = await Promise.all(
    ['child/main.ts', 'answer/main.ts'].map((file) =>
      compile(new URL(PROGRAMS + file, import.meta.url)),
    ),
  )
  return { receiver, answer }
}

const LEASE_SECONDS = 2

export interface Call {
  readonly caller?: string
  readonly call?: string
  readonly key?: string
  readonly item?: string
}

/** A core and two receivers, and what is told of them. */
export async function openRoom() {
  const core = await startIdentityCore({ apiKey: API_KEY })
  const told: ReceiverReport[] = []
  const receivers = await openReceivers({
    coreUrl: core.url,
    issuer: core.issuer,
    apiKey: API_KEY,
    leaseSeconds: LEASE_SECONDS,
    programs: await programs(),
    onReport: (batch) => told.push(batch),
    onChange() {},
  })

  async function headersOf(call: Call, permission: string): Promise<Record<string, string>> {
    const { caller = 'billing' } = call
    const token = await serviceTokenBy(core, caller, { permissions: [permission] })
    return {
      authorization: `Bearer ${token}`,
      ...(call.call !== undefined && { 'x-room-call': call.call }),
    }
  }

  async function writeRequest(call: Call = {}) {
    const { key = randomUUID(), item = 'lamp' } = call
    const headers = {
      ...(await headersOf(call, 'orders:write')),
      'idempotency-key': `"${key}"`,
      'content-type': 'application/json',
    }
    return { method: 'POST', headers, body: JSON.stringify({ item, quantity: 1 }) }
  }

  return {
    receivers,
    events: () => told.flatMap(({ events }) => events),
    requests: () => told.flatMap(({ requests }) => requests),
    stateOf: (name: ReceiverName) => receivers.states().find((state) => state.name === name),
    async read(name: ReceiverName, call: Call = {}) {
      const headers = await headersOf(call, 'orders:read')
      return answerOf(fetch(`${receivers.urlOf(name)}/orders/o-1`, { headers }))
    },
    async write(name: ReceiverName, call: Call = {}) {
      return answerOf(fetch(`${receivers.urlOf(name)}/orders`, await writeRequest(call)))
    },
    async close() {
      await receivers.close()
      await core.close()
    },
  }
}

export type OpenRoom = Awaited<ReturnType<typeof openRoom>>

/** What a caller got; a connection that was refused or cut has no status. */
async function answerOf(sent: Promise<Response>) {
  try {
    const response = await sent
    const text = await response.text()
    const type = (JSON.parse(text) as { type?: string }).type
    const isReplay = response.headers.has('idempotent-replayed')
    return { status: response.status, type, text, isReplay }
  } catch {
    return { status: undefined, type: undefined, text: '', isReplay: false }
  }
}
