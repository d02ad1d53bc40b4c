import { now } from '../state.js'
import { seconds } from './words.js'

/** How long ago something was, by the server's clock. */
export function Ago({ at }: { readonly at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{seconds(now.value - at)} ago</time>
}

/** How long it is until something. */
export function Left({ until }: { readonly until: number }) {
  return <time dateTime={new Date(until).toISOString()}>{seconds(until - now.value)}</time>
}
