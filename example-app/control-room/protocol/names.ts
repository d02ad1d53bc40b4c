export const RECEIVERS = ['orders-1', 'orders-2'] as const

export type ReceiverName = (typeof RECEIVERS)[number]

/** How a request ended, as plots and filters distinguish it. */
export const OUTCOMES = ['accepted', 'replayed', 'refused', 'undecided', 'failed'] as const

export type Outcome = (typeof OUTCOMES)[number]
