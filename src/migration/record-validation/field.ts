/** Any other name may hold account data, as a map by e-mail address has it. */
const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,63}$/

/** The path of a member; a name that is not plain is cut. */
export function fieldOf(parent: string, name: string): string {
  if (!PLAIN_NAME.test(name)) return `${parent}["…"]`
  return parent === '' ? name : `${parent}.${name}`
}
