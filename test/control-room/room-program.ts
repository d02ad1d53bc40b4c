import { openRoom } from '../../example-app/control-room/open-room.js'
import type { Programs } from '../../example-app/control-room/receivers/open-receivers.js'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'

// A room in a process of its own, which says the ids of its receivers' processes.
const programs: Programs = JSON.parse(process.argv[2] ?? '')
const apiKey = 'key-of-a-room-that-is-killed'
const core = await startIdentityCore({ apiKey })
const room = await openRoom({ core, apiKey, programs })
process.send?.(room.state().receivers.map(({ pid }) => pid))
