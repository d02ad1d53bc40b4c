import type { Beginning, ToReceiver } from '../messages.js'
import { send } from './parent.js'
import { serveAsReceiver } from './serve-as-receiver.js'

// Ctrl-C goes to the whole group of processes; the parent ends its receivers itself.
process.on('SIGINT', () => undefined)
process.once('disconnect', () => process.exit(0))

process.once('message', (beginning: Beginning) => {
  serveAsReceiver(beginning, (hear) => {
    process.on('message', (message: ToReceiver) => hear(message))
  }).catch((error: Error) => {
    send({ type: 'failed', complaint: error.message }, () => process.exit(1))
  })
})
