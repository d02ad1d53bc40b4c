/** The bundler puts what is imported so into the page's style sheet. */
declare module '*.css' {}
