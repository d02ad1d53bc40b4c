/** The methods whose case `fetch` corrects (Fetch Standard, "normalize a method"); any other is sent as it is. */
const NORMALISED_METHOD = /^(delete|get|head|options|post|put)$/i

/** The method as `fetch` sends it. */
export const sentMethod = (method: string): string =>
  NORMALISED_METHOD.test(method) ? method.toUpperCase() : method
