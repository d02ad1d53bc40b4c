import type { TcpProxy } from './tcp-proxy.js'

const FAULTS = ['none', 'before', 'in', 'after', 'in the reply'] as const

/** When the first attempt of a call loses its reply; `before`, `in` and `after` refer to the work of the handler. */
export type ReplyFault = (typeof FAULTS)[number]

/** The share of calls to which `faultOf` gives a fault. */
export const FAULTY_SHARE: number = (FAULTS.length - 1) / FAULTS.length

/** Returns the fault of the call with this index: each fault in turn. */
export const faultOf = (index: number): ReplyFault => FAULTS[index % FAULTS.length] ?? 'none'

/** Whether the work is done when the reply is lost, so that the next attempt gets the result. */
export const isDoneBefore = (fault: ReplyFault): boolean => fault !== 'none' && fault !== 'before'

/** Makes the proxy lose the next reply. For `in`, the handler itself must break the connection. */
export async function loseNextReply(proxy: TcpProxy, fault: ReplyFault): Promise<void> {
  if (fault === 'before') await proxy.fail('accepted and closed')
  if (fault === 'after') proxy.loseReply()
  if (fault === 'in the reply') await proxy.fail('cut in the middle of a reply')
}
