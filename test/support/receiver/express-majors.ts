import express5 from 'express'
import express4 from 'express4'

export type ExpressModule = typeof express5

export interface ExpressMajor {
  readonly major: string
  readonly express: ExpressModule
}

/** Both majors that the package supports. The types of Express 4 differ, although its functions do not. */
export const EXPRESS_MAJORS: readonly ExpressMajor[] = [
  { major: 'Express 4', express: express4 as unknown as ExpressModule },
  { major: 'Express 5', express: express5 },
]
