import type { TcpProxy } from './tcp-proxy.js'

const FAULTS = ['none', 'before', 'in', 'after', 'in the reply'] as const

/** Where, beside the work of a write, the first attempt of a call loses its reply. */
export type ReplyFault = (typeof FAULTS)[number]

/** The share of calls that `faultOf` lets lose a reply. */
export const FAULTY_SHARE: number = (FAULTS.length - 1) / FAULTS.length

/** The fault of the call that is made as the `index`-th: all by turns. */
export const faultOf = (index: number): ReplyFault => FAULTS[index % FAULTS.length] ?? 'none'

/** Whether the work is done when the reply is lost, so that the next attempt gets its result. */
export const isDoneBefore = (fault: ReplyFault): boolean => fault !== 'none' && fault !== 'before'

/** Has the next reply lost; one that is lost in the work is cut by the work itself. */
export async function strike(proxy: TcpProxy, fault: ReplyFault): Promise<void> {
  if (fault === 'before') await proxy.fail('accepted and closed')
  if (fault === 'after') proxy.loseReply()
  if (fault === 'in the reply') await proxy.fail('cut in the middle of a reply')
}
