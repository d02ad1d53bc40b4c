/** `Promise.withResolvers`, which Node lacks before version 22. */
export function withResolvers<T = void>(): {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
} {
  let settle: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: settle }
}
