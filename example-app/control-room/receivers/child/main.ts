import { endWithParent } from '../../end-with-parent.js'
import type { Beginning, ToReceiver } from '../messages.js'
import { send } from './parent.js'
import { serveAsReceiver } from './serve-as-receiver.js'

endWithParent()

process.once('message', (beginning: Beginning) => {
  serveAsReceiver(beginning, (receive) => {
    process.on('message', (message: ToReceiver) => receive(message))
  }).catch((error: Error) => {
    send({ type: 'failed', complaint: error.message }, () => process.exit(1))
  })
})
