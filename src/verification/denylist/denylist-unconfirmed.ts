import { ServiceAuthError } from '../../base/decision/service-auth-error.js'

/** A write to a denylist that was not confirmed. Its `code` is `unavailable`. */
export class DenylistUnconfirmed extends ServiceAuthError {
  /** Whether it may have been written all the same. */
  readonly mayBeWritten: boolean

  /** `deny` and `allow` make these. */
  constructor(fault: string, mayBeWritten: boolean) {
    const outcome = mayBeWritten ? 'not known whether it was written' : 'nothing was written'
    super('unavailable', `the denylist is out of reach, ${outcome}: ${fault}`)
    this.mayBeWritten = mayBeWritten
  }
}
