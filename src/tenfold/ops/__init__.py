"""Operations: the declarations. Importing a page declares its operations."""
