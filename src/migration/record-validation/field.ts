/** Any other name may contain account data, for example in an object whose keys are e-mail addresses. */
const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,63}$/

/** Returns the path of a member, with `…` for a name that is not plain. */
export function fieldOf(parent: string, name: string): string {
  if (!PLAIN_NAME.test(name)) return `${parent}["…"]`
  return parent === '' ? name : `${parent}.${name}`
}
