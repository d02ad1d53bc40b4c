/*
 * What passes between the control room's server and its page, as JSON. Times are milliseconds since
 * the epoch by the server's clock, durations milliseconds, unless a name says seconds.
 */

export type * from './protocol/actions.js'
export { UNFINISHED } from './protocol/actions.js'
export type * from './protocol/event.js'
export type * from './protocol/messages.js'
export type * from './protocol/names.js'
export { OUTCOMES, RECEIVERS } from './protocol/names.js'
export type * from './protocol/results.js'
export type * from './protocol/state.js'
