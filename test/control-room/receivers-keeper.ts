import { type DenylistEntry, type DenylistTarget, memoryStore } from 'express-service-auth'
import {
  type CallMessage,
  createCalls,
} from '../../example-app/control-room/receivers/ipc/calls.js'
import { createDeniedList } from '../../example-app/control-room/receivers/ipc/denied-list.js'
import { storeHandlers } from '../../example-app/control-room/receivers/ipc/parent-store.js'

/** The side of the room: keeps the records and what is denied, in a process of its own. */
const send = (message: object): void => {
  process.send?.(message)
}
const list = createDeniedList()
const calls = createCalls(send, {
  ...storeHandlers(memoryStore(), () => calls),
  deny: (entry: DenylistEntry) => list.deny(entry),
  allow: (target: DenylistTarget) => list.allow(target),
  stumble() {
    throw new RangeError('stumbled')
  },
})
process.on('message', (message: CallMessage) => calls.receive(message))
process.on('disconnect', () => process.exit(0))
send({ type: 'ready' })
list.subscribe((denied) => send({ type: 'denied', denied }))
