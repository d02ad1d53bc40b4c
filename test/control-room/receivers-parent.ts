import { openRoom } from './receivers-room.js'

/** A room in a process that can be killed. */
const [receiver = '', answer = ''] = process.argv.slice(2)
const room = await openRoom(undefined, { receiver, answer })
process.send?.(room.receivers.states().map(({ pid }) => pid))
