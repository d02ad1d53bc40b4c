const LOGGABLE = /^[\x21-\x7e]{1,128}$/

/** `req.id` as the app has set it, where it is safe to log. */
export function requestIdOf(request: object): string | number | undefined {
  const { id } = request as { id?: unknown }
  if (typeof id === 'number' && Number.isFinite(id)) return id
  return typeof id === 'string' && LOGGABLE.test(id) ? id : undefined
}
